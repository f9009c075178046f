package api

import "time"

// The strategies of the download queue (D-3).
const (
	StrategyOrdered       = "ordered"        // weighted classes, principals in turn, first come first served
	StrategySmallestFirst = "smallest-first" // in a class, fewer remaining bytes first
	StrategyShared        = "shared"         // no queue: each request is admitted by itself, the link split evenly
)

// How large downloads are admitted.
const (
	AdmissionSessions   = "sessions"    // a download takes a seat, or waits for one
	AdmissionPerRequest = "per-request" // strategy shared: settings of sessions have no effect
)

// DownloadSettings is what an operator changed of the download queue (D-9.1). What is absent follows the environment of
// the server; all of it absent, {}, goes back to the environment.
type DownloadSettings struct {
	Strategy         *string                `json:"strategy,omitempty" enum:"ordered,smallest-first,shared" doc:"Who starts next. shared: no queue, the link split evenly."`
	Sessions         *int                   `json:"sessions,omitempty" doc:"Seats: downloads of large objects at once. When it changes without reserve or perPrincipal, those are lowered to fit."`
	SessionsMin      *int                   `json:"sessionsMin,omitempty" doc:"With sessionsMax: the fewest seats."`
	SessionsMax      *int                   `json:"sessionsMax,omitempty" doc:"The seats follow the use of the link between sessionsMin and this; the bandwidth must be set. 0: they stay at sessions."`
	Reserve          *int                   `json:"reserve,omitempty" doc:"Seats kept for interactive."`
	PerPrincipal     *int                   `json:"perPrincipal,omitempty" doc:"Seats of one principal while others wait."`
	Weights          *ClassWeights          `json:"weights,omitempty" doc:"Turns of each class in a round; all four or none."`
	SessionMinBytes  *int64                 `json:"sessionMinBytes,omitempty" doc:"Larger objects queue for a seat."`
	IdleSeconds      *int                   `json:"idleSeconds,omitempty" doc:"Pause after which a download gives its seat back."`
	AgingMinutes     *int                   `json:"agingMinutes,omitempty" doc:"Waiting this long raises a download, once per as long again. 0: never."`
	Preempt          *bool                  `json:"preempt,omitempty" doc:"A seat may be taken back between two ranges."`
	RangesPerSession *int                   `json:"rangesPerSession,omitempty" doc:"Responses of one download at once."`
	Windows          map[string]ClassWindow `json:"windows,omitempty" doc:"Hours in which a class may start, by class; a class that is not named is always open."`
	MinRate          *int64                 `json:"minRate,omitempty" doc:"Bytes per second that a seat asks of its reader; a slower one moves aside while others wait. 0: none."`
	PollBudget       *int                   `json:"pollBudget,omitempty" doc:"Polls a second that all who wait are told to make together. 0: no such bound."`
}

// ClassWeights are the turns of each class in a round of the order (D-4.1).
type ClassWeights struct {
	Interactive uint32 `json:"interactive"`
	Release     uint32 `json:"release"`
	Bulk        uint32 `json:"bulk"`
	Background  uint32 `json:"background"`
}

// ClassWindow is when a class may start downloads (D-5.2).
type ClassWindow struct {
	Zone         string      `json:"zone" doc:"Time zone of the hours, such as Europe/Berlin."`
	Open         []OpenHours `json:"open" nullable:"false" doc:"Open while any of them is."`
	OutsideShare float64     `json:"outsideShare,omitempty" doc:"Share of the bandwidth outside the hours, 0 to 1. 0: starts only inside."`
}

// OpenHours opens on the named weekdays from one time of day to another; To at or before From is on the next day.
type OpenHours struct {
	Days []string `json:"days,omitempty" nullable:"false" doc:"Of mon, tue, wed, thu, fri, sat, sun; every day when absent."`
	From string   `json:"from" doc:"HH:MM"`
	To   string   `json:"to" doc:"HH:MM, up to 24:00"`
}

// DownloadSettingsChange is the body of PUT /api/v1/system/downloads/settings.
type DownloadSettingsChange struct {
	Settings         DownloadSettings `json:"settings" doc:"The whole record; what is absent goes back to the environment."`
	ExpectedRevision int64            `json:"expectedRevision" doc:"The revision this change was made from; another one is answered revision_mismatch."`
	DryRun           bool             `json:"dryRun,omitempty" doc:"Store nothing: answer what would change, with a forecast of the queue."`
}

// DownloadSettingsState is the answer of GET and PUT /api/v1/system/downloads/settings.
type DownloadSettingsState struct {
	Revision      int64             `json:"revision" doc:"Of the stored record; 0 when none was ever stored."`
	Running       int64             `json:"runningRevision" doc:"Of the record that runs; another one than revision when problem says why."`
	Settings      DownloadSettings  `json:"settings" doc:"The stored record: only what was changed."`
	Effective     DownloadSettings  `json:"effective" doc:"What runs; in the answer to a dry run, what would."`
	Environment   DownloadSettings  `json:"environment" doc:"What runs with an empty record."`
	Admission     string            `json:"admission" enum:"sessions,per-request"`
	Problem       string            `json:"problem,omitempty" doc:"Why the stored record does not run."`
	ChangedAt     *time.Time        `json:"changedAt,omitempty"`
	ChangedBy     string            `json:"changedBy,omitempty" doc:"Account id."`
	ChangedByName string            `json:"changedByName,omitempty"`
	Changes       []SettingChange   `json:"changes,omitempty" nullable:"false" doc:"In the answer to PUT: what runs otherwise than before, what was lowered to fit among it."`
	DryRun        bool              `json:"dryRun,omitempty"`
	Forecast      *SettingsForecast `json:"forecast,omitempty" doc:"In the answer to a dry run."`
}

// SettingChange is one setting that runs otherwise than before.
type SettingChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	Note  string `json:"note,omitempty" doc:"Why, when the change did not name the field."`
}

// DownloadSettingsRevision is one line of GET /api/v1/system/downloads/settings/history.
type DownloadSettingsRevision struct {
	Revision      int64            `json:"revision"`
	ChangedAt     time.Time        `json:"changedAt"`
	ChangedBy     string           `json:"changedBy" doc:"Account id."`
	ChangedByName string           `json:"changedByName"`
	Fields        []string         `json:"fields" nullable:"false" doc:"What this revision set or took back."`
	Settings      DownloadSettings `json:"settings" doc:"The record as it was stored."`
}

// SettingsForecast is the live queue played forward under the settings that run and under those of a dry run.
type SettingsForecast struct {
	Known     bool            `json:"known" doc:"False while the rate of the link is not known."`
	Reason    string          `json:"reason,omitempty" doc:"Why it is not known, or not whole."`
	Truncated bool            `json:"truncated,omitempty" doc:"Not every session was played to its start; the figures are of those that were."`
	Sessions  int             `json:"sessions" doc:"Waiting sessions that were played."`
	Before    ForecastDrain   `json:"before"`
	After     ForecastDrain   `json:"after"`
	Classes   []ForecastClass `json:"classes" nullable:"false"`
}

// ForecastDrain is how long the queue takes if nothing else comes.
type ForecastDrain struct {
	DrainSeconds  float64 `json:"drainSeconds" doc:"Until nobody waits."`
	FinishSeconds float64 `json:"finishSeconds" doc:"Until the last byte."`
}

// ForecastClass is what a change means for those who wait in a class.
type ForecastClass struct {
	Class   string        `json:"class"`
	Waiting int           `json:"waiting"`
	Before  ForecastWaits `json:"before"`
	After   ForecastWaits `json:"after"`
	Later   int           `json:"later" doc:"Sessions that would start more than a second later."`
	Earlier int           `json:"earlier"`
}

// ForecastWaits are counted from the arrival of each session.
type ForecastWaits struct {
	MeanWaitSeconds   float64 `json:"meanWaitSeconds" doc:"Until the start."`
	MaxWaitSeconds    float64 `json:"maxWaitSeconds"`
	MeanFinishSeconds float64 `json:"meanFinishSeconds" doc:"Until the last byte."`
}
