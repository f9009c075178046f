package identity

import (
	"context"
	"regexp"
	"time"

	"github.com/roadstead/roadstead/internal/audit"
	"github.com/roadstead/roadstead/internal/class"
	"github.com/roadstead/roadstead/internal/fault"
)

// Tenant owns accounts and repositories. Nothing of one tenant is visible to the accounts of another.
type Tenant struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// Account is a person or a service account. Its class and whether it is disabled are its policy; Revision counts
// the changes of the policy.
type Account struct {
	ID        string
	Kind      Kind // User or Service
	Tenant    string
	Name      string
	Class     class.Class // the ceiling of its downloads (D-4.1)
	Operator  bool
	Disabled  bool
	Role      TenantRole
	Revision  int64
	CreatedAt time.Time
}

// Principal is the account as a caller.
func (a Account) Principal() Principal {
	return Principal{ID: a.ID, Kind: a.Kind, Tenant: a.Tenant, Name: a.Name, Ceiling: a.Class, Operator: a.Operator, Role: a.Role}
}

// NewAccount says what account to make. Tenant empty means the actor's own. Class nil means the highest of the kind.
type NewAccount struct {
	Tenant   string
	Kind     Kind
	Name     string
	Class    *class.Class
	Operator bool
}

// AccountChange is a change of an account's policy; nil leaves a setting as it is.
type AccountChange struct {
	Class    *class.Class
	Disabled *bool
	Role     *TenantRole
}

var (
	tenantName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	accountName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
)

const (
	tenantNameForm  = "must be 1 to 63 of a-z 0-9 -, beginning with a letter or digit"
	accountNameForm = "must be 1 to 63 of a-z 0-9 . _ -, beginning with a letter or digit"
)

// CheckTenantName refuses a tenant name that is not of the allowed form.
func CheckTenantName(field, s string) error {
	if !tenantName.MatchString(s) {
		return fault.Invalid(field, tenantNameForm)
	}
	return nil
}

// CheckAccountName refuses an account name that is not of the allowed form.
func CheckAccountName(field, s string) error {
	if !accountName.MatchString(s) {
		return fault.Invalid(field, accountNameForm)
	}
	return nil
}

// highest is the highest class an account of the kind may have (D-4.1).
func highest(k Kind) class.Class {
	if k == User {
		return class.Interactive
	}
	return class.Release
}

// checkClass refuses a class above the kind's highest, and any but interactive for people, whose class is not a
// matter of policy (D-4.1, D-4.3).
func checkClass(k Kind, c class.Class) error {
	switch {
	case c >= class.Count:
		return fault.Invalid("class", "must be one of interactive, release, bulk, background")
	case k == User && c != class.Interactive:
		return fault.Invalid("class", "people are interactive; only a service account's class can be set")
	case k == Service && c < class.Release:
		return fault.Invalid("class", "a service account is release, bulk or background")
	}
	return nil
}

// CreateTenant makes a tenant. Operators only.
func (d *Directory) CreateTenant(ctx context.Context, actor Principal, name string) (Tenant, error) {
	if err := needOperator(actor); err != nil {
		return Tenant{}, err
	}
	if err := CheckTenantName("name", name); err != nil {
		return Tenant{}, err
	}
	t := Tenant{ID: d.newID(), Name: name, CreatedAt: d.now()}
	return t, d.store.CreateTenant(ctx, t, d.entry(actor, t.ID, "tenant.created", t.ID, name))
}

// ListTenants lists tenants by name, from the one after `after`; next is empty on the last page. An operator sees
// all, everybody else the own one.
func (d *Directory) ListTenants(ctx context.Context, actor Principal, after string, limit int) (page []Tenant, next string, err error) {
	only := actor.Tenant
	if actor.Operator {
		only = ""
	}
	limit = PageSize(limit)
	page, err = d.store.ListTenants(ctx, only, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name
	}
	return page, next, nil
}

// CreateAccount makes a user or a service account. Operators only.
func (d *Directory) CreateAccount(ctx context.Context, actor Principal, n NewAccount) (Account, error) {
	if err := needOperator(actor); err != nil {
		return Account{}, err
	}
	if n.Tenant == "" {
		n.Tenant = actor.Tenant
	}
	if err := CheckAccountName("name", n.Name); err != nil {
		return Account{}, err
	}
	if n.Kind != User && n.Kind != Service {
		return Account{}, fault.Invalid("kind", "must be user or service")
	}
	if n.Operator && n.Kind != User {
		return Account{}, fault.Invalid("operator", "only a user can be an operator")
	}
	c := highest(n.Kind)
	if n.Class != nil {
		c = *n.Class
	}
	if err := checkClass(n.Kind, c); err != nil {
		return Account{}, err
	}
	a := Account{
		ID: d.newID(), Kind: n.Kind, Tenant: n.Tenant, Name: n.Name, Class: c, Operator: n.Operator,
		Revision: 1, CreatedAt: d.now(),
	}
	return a, d.store.CreateAccount(ctx, a, d.entry(actor, a.Tenant, "account.created", a.ID, string(a.Kind)+" "+a.Name))
}

// Account finds an account. An operator sees every account, everybody else those of the own tenant.
func (d *Directory) Account(ctx context.Context, actor Principal, id string) (Account, error) {
	a, err := d.store.Account(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if !actor.Operator && (actor.Kind == Link || a.Tenant != actor.Tenant) {
		return Account{}, fault.Missing("account")
	}
	return a, nil
}

// ListAccounts lists a tenant's accounts by name, from the one after `after`. Tenant empty means the actor's own;
// another tenant's is not found, save for operators.
func (d *Directory) ListAccounts(ctx context.Context, actor Principal, tenant, after string, limit int) (page []Account, next string, err error) {
	if tenant == "" {
		tenant = actor.Tenant
	}
	if !actor.Operator && (actor.Kind == Link || tenant != actor.Tenant) {
		return nil, "", fault.Missing("tenant")
	}
	limit = PageSize(limit)
	page, err = d.store.ListAccounts(ctx, tenant, after, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].Name
	}
	return page, next, nil
}

// ChangeAccount changes an account's policy if it still is at the expected revision; otherwise the fault is
// revision_mismatch (D-4.3). Operators only. An operator can't disable the own account: that could lock out everyone.
func (d *Directory) ChangeAccount(ctx context.Context, actor Principal, id string, expected int64, change AccountChange) (Account, error) {
	if err := needOperator(actor); err != nil {
		return Account{}, err
	}
	a, err := d.store.Account(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if a.Revision != expected {
		return Account{}, RevisionMismatch("account", a.Revision)
	}
	detail := ""
	if change.Class != nil {
		if err := checkClass(a.Kind, *change.Class); err != nil {
			return Account{}, err
		}
		detail += "class " + a.Class.String() + " -> " + change.Class.String() + "; "
		a.Class = *change.Class
	}
	if change.Role != nil {
		if *change.Role != Member && *change.Role != TenantAdmin {
			return Account{}, fault.Invalid("tenantRole", "must be member or admin")
		}
		detail += "tenant role " + a.Role.String() + " -> " + change.Role.String() + "; "
		a.Role = *change.Role
	}
	if change.Disabled != nil {
		if *change.Disabled && a.ID == actor.ID {
			return Account{}, fault.New(fault.Conflict, "you can't disable your own account; let another operator do it")
		}
		detail += map[bool]string{true: "disabled", false: "enabled"}[*change.Disabled]
		a.Disabled = *change.Disabled
	}
	a.Revision = expected + 1
	return a, d.store.ChangeAccount(ctx, a, expected, d.entry(actor, a.Tenant, "account.changed", a.ID, detail))
}

// RevisionMismatch is the fault of a compare-and-set that lost: someone changed the thing meanwhile.
func RevisionMismatch(what string, current int64) error {
	return fault.New(fault.RevisionMismatch, "the %s was changed meanwhile and is now at revision %d; read it again, then repeat", what, current)
}

func (d *Directory) entry(actor Principal, tenant, action, target, detail string) audit.Entry {
	return audit.Entry{ID: d.newID(), At: d.now(), Tenant: tenant, Actor: actor.ID, Action: action, Target: target, Detail: detail}
}
