package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/roadstead/roadstead/internal/fault"
)

// AES-256 in Galois/Counter mode: a nonce of 96 random bits, then ciphertext and tag. With random nonces one key may
// seal 2^32 values; rotations stay far below.
const nonceBytes = 12

var errSealed = errors.New("the value does not open: it was changed, or is not the one of this secret and version")

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// boundTo is what a value is sealed together with: moved to another secret, tenant, version or key it doesn't open. Each
// part is preceded by its length, so that no two lists of parts read alike.
func boundTo(v Sealed) []byte {
	var out []byte
	for _, part := range []string{"roadstead secret", v.Secret, v.Tenant, v.Name, v.Key} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return binary.BigEndian.AppendUint64(out, uint64(v.Version))
}

// sealUnder seals the value under the key that v names.
func sealUnder(key []byte, v Sealed, value []byte) ([]byte, error) {
	aead, err := sealer(key)
	if err != nil {
		return nil, fmt.Errorf("sealing a secret: %w", err)
	}
	nonce := make([]byte, nonceBytes, nonceBytes+len(value)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("sealing a secret: %w", err)
	}
	return aead.Seal(nonce, nonce, value, boundTo(v)), nil
}

func openUnder(key []byte, v Sealed) ([]byte, error) {
	aead, err := sealer(key)
	if err != nil {
		return nil, fmt.Errorf("opening a secret: %w", err)
	}
	if len(v.Text) < nonceBytes+aead.Overhead() {
		return nil, errSealed
	}
	value, err := aead.Open(nil, v.Text[:nonceBytes], v.Text[nonceBytes:], boundTo(v))
	if err != nil {
		return nil, errSealed
	}
	return value, nil
}

// seal makes the newest version of a secret.
func (s *Service) seal(of Secret, value []byte) (Sealed, error) {
	id, key := s.keys.current()
	v := Sealed{Secret: of.ID, Tenant: of.Tenant, Name: of.Name, Version: of.Version, Key: id}
	text, err := sealUnder(key, v, value)
	v.Text = text
	return v, err
}

// open gives the value back. That it can't is told without a word of what is inside.
func (s *Service) open(v Sealed) ([]byte, error) {
	key, err := s.keys.find(v.Key)
	if err == nil {
		var value []byte
		if value, err = openUnder(key, v); err == nil {
			return value, nil
		}
	}
	return nil, fault.Wrap(fault.Internal, fmt.Errorf("opening version %d of secret %s: %w", v.Version, v.Secret, err), "secret %s can't be opened; tell the operator", v.Name)
}
