package api

import "time"

// Secret is a secret without its value, which no answer ever holds.
type Secret struct {
	Name      string    `json:"name"`
	Tenant    string    `json:"tenant"`
	Version   int64     `json:"version" doc:"Counts the values it had."`
	Packages  []string  `json:"packages" nullable:"false" doc:"The only packages that get it; empty: every Run of the tenant."`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	RotatedAt time.Time `json:"rotatedAt" doc:"When its value was given."`
	RotatedBy string    `json:"rotatedBy"`
}

// SecretValue is a value on its way in. It is the body of PUT on a secret's value.
type SecretValue struct {
	Value  string `json:"value" doc:"6 bytes that are no spaces at least: shorter ones can't be masked in logs."`
	Base64 bool   `json:"base64,omitempty" doc:"The value is the base64 of what is meant."`
}

// NewSecret is the body of POST /api/v1/secrets.
type NewSecret struct {
	Tenant   string   `json:"tenant,omitempty" doc:"Tenant id, for operators; the caller's own when absent."`
	Name     string   `json:"name" doc:"1 to 100 of A-Z a-z 0-9 . _ -, beginning with a letter or digit; the name of the file that a Run finds it in."`
	Packages []string `json:"packages,omitempty" doc:"The only packages that get it, as NAME or TENANT/NAME; absent: every Run of the tenant."`
	SecretValue
}

// SecretScope is the body of PUT on a secret's packages.
type SecretScope struct {
	Packages []string `json:"packages" nullable:"false"`
}

// RotateSecretsKey is the body of POST /api/v1/system/secrets/rotate-key.
type RotateSecretsKey struct {
	ResealOnly bool `json:"resealOnly,omitempty" doc:"Make no new key; seal under the current one what is not yet, after a rotation that was interrupted."`
}

// SecretsKeyRotated is the answer.
type SecretsKeyRotated struct {
	Key      string `json:"key" doc:"Id of the key that values are sealed under now."`
	Resealed int    `json:"resealed" doc:"Values that were sealed anew."`
	Unopened int    `json:"unopened" doc:"Values that could not be opened and stay as they are."`
}
