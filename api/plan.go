package api

import "time"

// PlanQuery asks for a plan of what was measured. 0 means the default.
type PlanQuery struct {
	Pool          string
	WindowSeconds int64   // an hour to seven days; a day when 0
	TargetLoad    float64 // part of the slots that is busy on average; 0.7 when 0
	Forecast      bool    // with a forecast of the wait
}

// Plan is the capacity that what came to a pool needs: averages, and apart from them a forecast.
type Plan struct {
	Pool       string        `json:"pool"`
	From       time.Time     `json:"from" doc:"What was measured came since."`
	To         time.Time     `json:"to"`
	TargetLoad float64       `json:"targetLoad"`
	Measured   []ClassLoad   `json:"measured" nullable:"false"`
	Busy       float64       `json:"busy" doc:"Slots busy on average: rate x duration."`
	Slots      int64         `json:"slots" doc:"At least busy / targetLoad, class by class."`
	Classes    []ClassSlots  `json:"classes" nullable:"false"`
	Forecast   *PlanForecast `json:"forecast,omitempty" doc:"Proves nothing: only a load measurement proves an objective."`
	Notes      []string      `json:"notes,omitempty"`
}

// ClassLoad is what was measured of one workload class.
type ClassLoad struct {
	Class           string  `json:"class"`
	Runs            int64   `json:"runs" doc:"That came."`
	RunsPerMinute   float64 `json:"runsPerMinute"`
	Attempts        int64   `json:"attempts" doc:"That ended; what follows is of them, the newest."`
	Seconds         float64 `json:"seconds" doc:"From assignment to end, on average."`
	P95Seconds      float64 `json:"p95Seconds" doc:"For people; the plan makes no use of it."`
	Variation       float64 `json:"variation" doc:"Standard deviation in parts of the average."`
	Slots           float64 `json:"slots" doc:"Asked for, on average, and so are the next three."`
	MilliCPU        float64 `json:"milliCpu"`
	MemoryBytes     float64 `json:"memoryBytes"`
	DiskBytes       float64 `json:"diskBytes"`
	UsedMilliCPU    float64 `json:"usedMilliCpu" doc:"On average, as runners measured it."`
	UsedMemoryBytes int64   `json:"usedMemoryBytes" doc:"The most of any."`
	LogBytes        float64 `json:"logBytes" doc:"On average."`
}

// ClassSlots is what a class needs.
type ClassSlots struct {
	Class string  `json:"class"`
	Busy  float64 `json:"busy"`
	Slots int64   `json:"slots"`
}

// PlanForecast is how long Runs would wait on so many slots, by a random load played on the machine that orders Runs.
type PlanForecast struct {
	Label  string  `json:"label" enum:"forecast"`
	Slots  int64   `json:"slots"`
	Load   float64 `json:"load"`
	Runs   int64   `json:"runs" doc:"Played."`
	Stable bool    `json:"stable" doc:"False: more comes than the slots can do."`
	P50    float64 `json:"p50Seconds"`
	P95    float64 `json:"p95Seconds"`
	P99    float64 `json:"p99Seconds"`
}
