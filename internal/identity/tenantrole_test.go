package identity_test

import (
	"testing"

	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
)

// An operator makes an account the admin of its tenant, by compare-and-set and with a line in the audit; the role counts
// in that tenant only, and an account can't take it by itself (D-11.4).
func TestTenantAdmin(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	acme, err := h.CreateTenant(ctx, h.operator, "acme")
	ok(t, err)
	ann := h.account(acme.ID, identity.User, "ann")
	if ann.Administers(acme.ID) || !ann.Belongs(acme.ID) || ann.Belongs(h.operator.Tenant) || ann.Belongs("") {
		t.Fatalf("a new account: %+v", ann)
	}
	admin, member, odd := identity.TenantAdmin, identity.Member, identity.TenantRole("king")
	_, err = h.ChangeAccount(ctx, ann, ann.ID, 1, identity.AccountChange{Role: &admin})
	refused(t, err, fault.Forbidden)
	_, err = h.ChangeAccount(ctx, h.operator, ann.ID, 1, identity.AccountChange{Role: &odd})
	field(t, err, "tenantRole")
	a, err := h.ChangeAccount(ctx, h.operator, ann.ID, 1, identity.AccountChange{Role: &admin})
	ok(t, err)
	_, err = h.ChangeAccount(ctx, h.operator, ann.ID, 1, identity.AccountChange{Role: &member})
	refused(t, err, fault.RevisionMismatch)
	stored, err := h.Account(ctx, h.operator, ann.ID)
	ok(t, err)
	p := stored.Principal()
	if a.Revision != 2 || !p.Administers(acme.ID) || p.Administers(h.operator.Tenant) || p.Operator {
		t.Fatalf("after the change: %+v", p)
	}
	lines, err := h.store.ListAudit(ctx, "", 100)
	ok(t, err)
	if last := lines[len(lines)-1]; last.Action != "account.changed" || last.Detail != "tenant role member -> admin; " {
		t.Fatalf("in the audit: %+v", last)
	}
	link := p
	link.Kind = identity.Link
	if link.Belongs(acme.ID) || link.Administers(acme.ID) || !h.operator.Administers(acme.ID) {
		t.Fatal("a link belongs nowhere, an operator everywhere")
	}
}
