package goka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
)

// secured returns a configuration of sarama with SASL, if there is a user, and with other changes.
func secured(user string, change func(*sarama.Config)) *sarama.Config {
	config := DefaultConfig()
	config.Net.SASL.Enable, config.Net.SASL.User, config.Net.SASL.Password = user != "", user, "the secret"
	change(config)
	return config
}

func encrypted(config *tls.Config) func(*sarama.Config) {
	return func(c *sarama.Config) { c.Net.TLS.Enable, c.Net.TLS.Config = true, config }
}

func TestBrokersAreReachedAsSaramaReachesThem(t *testing.T) {
	roots := &tls.Config{RootCAs: x509.NewCertPool()}
	for _, each := range []struct {
		config *sarama.Config
		own    map[string]string
		want   string
	}{
		{DefaultConfig(), nil, "map[]"},
		{secured("ann", func(*sarama.Config) {}), nil,
			"map[kafka.sasl.mechanism:PLAIN kafka.sasl.password:the secret kafka.sasl.username:ann kafka.security.protocol:SASL_PLAINTEXT]"},
		{secured("", encrypted(nil)), nil, "map[kafka.security.protocol:SSL]"},
		{secured("", encrypted(roots)), nil, "the runtime cannot use RootCAs of Net.TLS.Config: say it with goka.WithKafkaOptions"},
		{secured("", encrypted(roots)), map[string]string{"kafka.ssl.ca.location": "/ca.pem"},
			"map[kafka.security.protocol:SSL kafka.ssl.ca.location:/ca.pem]"},
		{secured("", encrypted(&tls.Config{InsecureSkipVerify: true})), map[string]string{"kafka.ssl.cipher.suites": "x"},
			"map[kafka.enable.ssl.certificate.verification:false kafka.security.protocol:SSL kafka.ssl.cipher.suites:x]"},
		{secured("", encrypted(&tls.Config{InsecureSkipVerify: true})), map[string]string{verification: "true"},
			"map[kafka.enable.ssl.certificate.verification:true kafka.security.protocol:SSL]"},
		{secured("", encrypted(&tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return nil }})),
			map[string]string{"kafka.ssl.cipher.suites": "x"}, "the runtime cannot use a function of Net.TLS.Config that verifies"},
		{secured("", encrypted(&tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }})),
			nil, "the runtime cannot use GetClientCertificate"},
		{secured("ann", func(c *sarama.Config) { c.Net.SASL.Mechanism = sarama.SASLTypeOAuth }), nil,
			"the runtime cannot use Net.SASL.Mechanism OAUTHBEARER"},
		{secured("ann", func(c *sarama.Config) { c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512 }),
			map[string]string{"kafka.sasl.password": "another", "kafka.socket.timeout.ms": "9"},
			"map[kafka.sasl.mechanism:SCRAM-SHA-512 kafka.sasl.password:another kafka.sasl.username:ann " +
				"kafka.security.protocol:SASL_PLAINTEXT kafka.socket.timeout.ms:9]"},
	} {
		found, err := reach(each.config, each.own)
		got := fmt.Sprint(found)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, each.want) {
			t.Errorf("%s\n  not %s", got, each.want)
		}
	}
}

// TestCertificateOfAClient checks that the settings contain the client's key and certificate chain.
func TestCertificateOfAClient(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	own := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}}
	found, err := reach(secured("", encrypted(own)), nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := tls.X509KeyPair([]byte(found["kafka.ssl.certificate.pem"]), []byte(found["kafka.ssl.key.pem"]))
	if err != nil || !key.Equal(read.PrivateKey) || string(read.Certificate[0]) != string(signed) {
		t.Errorf("%v: %v", err, found)
	}
}

// TestEverySourceAndSinkIsReached checks that each source and sink has the settings, and that NewProcessor fails if a
// setting cannot be converted.
func TestEverySourceAndSinkIsReached(t *testing.T) {
	before := replacement
	defer func() { replacement = before }()
	ReplaceGlobalConfig(secured("ann", encrypted(&tls.Config{RootCAs: x509.NewCertPool()})))
	kafka := tester.New(t)
	if _, err := NewProcessor(nil, counted(), WithTopicManagerBuilder(kafka.TopicManagerBuilder())); err == nil {
		t.Error("RootCAs are lost")
	}
	made := onTester(t, kafka, counted(Join("users", new(codec.Int64))), WithKafkaOptions(map[string]string{"kafka.ssl.ca.location": "/ca.pem"}))
	type part struct{ Options map[string]string }
	var document struct {
		Pipelines []struct{ Sources, Sinks []part }
	}
	if err := json.Unmarshal([]byte(application([]string{"k:9092"}, []*group{made.group}).ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	all := append(document.Pipelines[0].Sources, document.Pipelines[0].Sinks...)
	for _, each := range all {
		if each.Options["kafka.sasl.username"] != "ann" || each.Options["kafka.ssl.ca.location"] != "/ca.pem" {
			t.Errorf("%v", each.Options)
		}
	}
	if len(all) != 5 {
		t.Errorf("%d sources and sinks", len(all))
	}
}
