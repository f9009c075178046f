package api

import (
	"context"
	"encoding/base64"

	"github.com/danielgtaylor/huma/v2"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/internal/identity"
	"github.com/roadstead/roadstead/internal/secrets"
)

// Secrets keeps secrets. No answer holds a value.
type Secrets interface {
	SecretReaders
	SecretWriters
}

// SecretReaders finds secrets.
type SecretReaders interface {
	Secret(ctx context.Context, p identity.Principal, tenant, name string) (secrets.Secret, error)
	List(ctx context.Context, p identity.Principal, tenant, after string, limit int) ([]secrets.Secret, string, error)
}

// SecretWriters changes them.
type SecretWriters interface {
	Create(ctx context.Context, p identity.Principal, tenant, name string, value []byte, packages []string) (secrets.Secret, error)
	Rotate(ctx context.Context, p identity.Principal, tenant, name string, value []byte) (secrets.Secret, error)
	Scope(ctx context.Context, p identity.Principal, tenant, name string, packages []string) (secrets.Secret, error)
	Delete(ctx context.Context, p identity.Principal, tenant, name string) error
	RotateKey(ctx context.Context, p identity.Principal) (secrets.Rewrapped, error)
	Rewrap(ctx context.Context, p identity.Principal) (secrets.Rewrapped, error)
}

type secretPage struct {
	PageQuery
	Tenant string `query:"tenant" doc:"Tenant id, for operators; the caller's own when absent."`
}

// InSecret names a secret in a path.
type InSecret struct {
	Name   string `path:"name"`
	Tenant string `query:"tenant" doc:"Tenant id, for operators; the caller's own when absent."`
}

type secretValuePut struct {
	InSecret
	Body api.SecretValue
}

type secretScopePut struct {
	InSecret
	Body api.SecretScope
}

func (o *operations) secrets(a huma.API) {
	do(a, route{"GET", "/secrets", "listSecrets", "List the secrets of a tenant, without their values"},
		func(ctx context.Context, caller identity.Principal, in *secretPage) (api.Page[api.Secret], error) {
			items, next, err := o.Secrets.List(ctx, caller, in.Tenant, in.After, in.Limit)
			return paged(items, next, err, wireSecret)
		})
	do(a, route{"POST", "/secrets", "createSecret", "Make a secret; for admins of the tenant. Its value never comes back"},
		func(ctx context.Context, caller identity.Principal, in *input[api.NewSecret]) (api.Secret, error) {
			value, err := valueOf(in.Body.SecretValue)
			if err != nil {
				return api.Secret{}, err
			}
			s, err := o.Secrets.Create(ctx, caller, in.Body.Tenant, in.Body.Name, value, in.Body.Packages)
			return wireSecret(s), err
		})
	do(a, route{"GET", "/secrets/{name}", "getSecret", "One secret, without its value"},
		func(ctx context.Context, caller identity.Principal, in *InSecret) (api.Secret, error) {
			s, err := o.Secrets.Secret(ctx, caller, in.Tenant, in.Name)
			return wireSecret(s), err
		})
	do(a, route{"PUT", "/secrets/{name}/value", "rotateSecret", "Give a secret another value; Attempts that start from now on get it"},
		func(ctx context.Context, caller identity.Principal, in *secretValuePut) (api.Secret, error) {
			value, err := valueOf(in.Body)
			if err != nil {
				return api.Secret{}, err
			}
			s, err := o.Secrets.Rotate(ctx, caller, in.Tenant, in.Name, value)
			return wireSecret(s), err
		})
	do(a, route{"PUT", "/secrets/{name}/packages", "scopeSecret", "Say which packages get a secret; none: every Run of the tenant"},
		func(ctx context.Context, caller identity.Principal, in *secretScopePut) (api.Secret, error) {
			s, err := o.Secrets.Scope(ctx, caller, in.Tenant, in.Name, in.Body.Packages)
			return wireSecret(s), err
		})
	act(a, route{"DELETE", "/secrets/{name}", "deleteSecret", "Forget a secret and every value it had"},
		func(ctx context.Context, caller identity.Principal, in *InSecret) error {
			return o.Secrets.Delete(ctx, caller, in.Tenant, in.Name)
		})
	do(a, route{"POST", "/system/secrets/rotate-key", "rotateSecretsKey", "Make a new key and seal every secret anew under it; for operators"},
		func(ctx context.Context, caller identity.Principal, in *input[api.RotateSecretsKey]) (api.SecretsKeyRotated, error) {
			rotate := o.Secrets.RotateKey
			if in.Body.ResealOnly {
				rotate = o.Secrets.Rewrap
			}
			done, err := rotate(ctx, caller)
			return api.SecretsKeyRotated{Key: done.Key, Resealed: done.Count, Unopened: done.Unopened}, err
		})
}

// valueOf is the value that is meant. Its refusal repeats none of it.
func valueOf(v api.SecretValue) ([]byte, error) {
	if !v.Base64 {
		return []byte(v.Value), nil
	}
	raw, err := base64.StdEncoding.DecodeString(v.Value)
	if err != nil {
		return nil, fault.Invalid("value", "must be base64")
	}
	return raw, nil
}

func wireSecret(s secrets.Secret) api.Secret {
	return api.Secret{
		Name: s.Name, Tenant: s.Tenant, Version: s.Version, Packages: append([]string{}, s.Packages...),
		CreatedAt: s.CreatedAt, CreatedBy: s.CreatedBy, RotatedAt: s.RotatedAt, RotatedBy: s.RotatedBy,
	}
}
