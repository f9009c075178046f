package main

const (
	order    = "internal/core/dispatch/"
	decider  = "internal/dispatcher/"
	foretell = "internal/core/forecast/"
)

// runs are faults of.
func runs() []fault {
	return []fault{
		{"R-2.1", "a tenant's cap counts nothing that runs", order + "tenant.go", "vector.within(&t.cap, &t.used)", "vector.within(&t.cap, &Vector{})", "TestTenantCap"},
		{"R-2.2", "every tenant weighs the same", order + "account.go", "a.finish += advance(cost, weight)", "a.finish += advance(cost, weight/weight)", "TestGoldenShares"},
		{"R-2.3", "a Run waits for twice as long as its pool allows", decider + "refresh.go", "now.Sub(t.eligible) > limit", "now.Sub(t.eligible) > 2*limit", "TestExpiry"},
		{"R-4.2", "a pool is taken from an owner that lives", decider + "pool.go", "now.Sub(p.ownerSince) < ownerLease", "now.Sub(p.ownerSince) < 0", "TestDeposed"},
		{"R-5.2", "another tenant's private package is found", "internal/catalog/query.go", "if !pkg.Public && !p.Belongs(pkg.Tenant) {", "if pkg.Public && !p.Belongs(pkg.Tenant) {", "TestPrivate"},
		{"R-6.2", "after a commit of unknown outcome the machine goes on as it was", decider + "pool.go", "\t\tp.reset() // whatever", "\t\t// whatever", "TestCommitOfUnknownOutcome"},
		{"R-6.3", "an Attempt is lost without the grace", decider + "leases.go", "silent > s.cfg.Lease+s.cfg.Grace:", "silent > s.cfg.Lease:", "TestLeaseLoss"},
		{"R-6.4", "a Run succeeds while its results can't be looked at", "internal/attempts/report.go", "\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tif !there {", "\t\tif err == nil && !there {", "TestVerificationWaitsForTheStore"},
	}
}

// learnt are faults of what estimates learn.
func learnt() []fault {
	return []fault{
		{"D-6.3", "a wait is scored again", machine + "promise.go", "\tr.promise = promise{}\n", "", "TestWaitIsScoredOnce"},
		{"D-6.3", "an overdue start counts at every look", machine + "promise.go", "!p.missed && ", "", "TestOverdueCountsAtOnce"},
		{"D-6.1", "nobody is expected to come any more", machine + "anticipate.go", "likely*float64(late)", "0*float64(late)", "TestStartCountsOnThoseToCome"},
		{"D-6.3", "a quantile that fails too often stays where it is", foretell + "calibration.go", "\t\tlevel += pace\n", "", "TestCalibrationCovers"},
		{"D-6.3", "a stream is expected that never flowed", foretell + "inflow.go", "!f.flows || ", "", "TestInflow"},
		{"D-6.3", "what a link carries counts while nobody waits", foretell + "use.go", "u.wanted && wanted && ", "", "TestUse"},
	}
}
