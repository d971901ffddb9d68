package goka

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/IBM/sarama"
)

// WithKafkaOptions adds settings for the runtime's connections to the brokers. Their names are those of librdkafka
// with the prefix "kafka.", such as "kafka.ssl.ca.location". The runtime takes user name, password and client
// certificate from the configuration of [ReplaceGlobalConfig]. Options given here have precedence. Goka has no such
// option.
func WithKafkaOptions(options map[string]string) ProcessorOption {
	return own(func(o *poptions) { maps.Copy(o.kafka, options) })
}

// protocols maps two answers to Kafka's setting security.protocol: are connections encrypted, and do clients log in? If
// both are no, the setting is left out.
var protocols = map[[2]bool]string{{true, false}: "SSL", {false, true}: "SASL_PLAINTEXT", {true, true}: "SASL_SSL"}

// reach converts a configuration of sarama into settings of librdkafka, so that the runtime connects to the brokers in
// the same way. The parameter own has the settings of WithKafkaOptions, which have precedence.
func reach(config *sarama.Config, own map[string]string) (map[string]string, error) {
	found := map[string]string{}
	if protocol := protocols[[2]bool{config.Net.TLS.Enable, config.Net.SASL.Enable}]; protocol != "" {
		found["kafka.security.protocol"] = protocol
	}
	var err error
	if config.Net.SASL.Enable {
		err = login(config, own, found)
	}
	if config.Net.TLS.Enable && config.Net.TLS.Config != nil {
		err = errors.Join(err, certificates(config.Net.TLS.Config, own, found))
	}
	maps.Copy(found, own)
	return found, err
}

// login adds the settings for the client's user name and password to found.
func login(config *sarama.Config, own, found map[string]string) error {
	mechanism := config.Net.SASL.Mechanism
	switch mechanism {
	case "":
		mechanism = sarama.SASLTypePlaintext
	case sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512:
	default:
		return needed(own, "kafka.sasl.mechanism", "Net.SASL.Mechanism "+string(mechanism))
	}
	found["kafka.sasl.mechanism"] = string(mechanism)
	found["kafka.sasl.username"], found["kafka.sasl.password"] = config.Net.SASL.User, config.Net.SASL.Password
	return nil
}

// verification is the setting of librdkafka by which a client verifies the certificates of brokers.
const verification = "kafka.enable.ssl.certificate.verification"

// certificates adds the settings for the client's certificate, and for verification, to found. It returns an error for
// trusted authorities, functions and other settings that cannot be converted, unless own replaces them.
func certificates(config *tls.Config, own, found map[string]string) (err error) {
	if config.RootCAs != nil {
		err = needed(own, "kafka.ssl.ca.", "RootCAs of Net.TLS.Config")
	}
	if config.VerifyPeerCertificate != nil || config.VerifyConnection != nil {
		err = errors.Join(err, needed(own, verification, "a function of Net.TLS.Config that verifies"))
	} else if config.InsecureSkipVerify {
		found[verification] = "false"
	}
	if config.GetClientCertificate != nil {
		err = errors.Join(err, needed(own, "kafka.ssl.certificate.", "GetClientCertificate of Net.TLS.Config"))
	}
	if len(config.Certificates) == 0 {
		return err
	}
	key, failed := x509.MarshalPKCS8PrivateKey(config.Certificates[0].PrivateKey)
	if failed != nil {
		return errors.Join(err, needed(own, "kafka.ssl.key.", "the private key of Net.TLS.Config"))
	}
	var chain []byte
	for _, each := range config.Certificates[0].Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: each})...)
	}
	found["kafka.ssl.certificate.pem"] = string(chain)
	found["kafka.ssl.key.pem"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return err
}

// needed returns an error that describes a setting of sarama which the runtime cannot use. It returns nil if own has an
// option with this prefix, because that option replaces the setting.
func needed(own map[string]string, prefix, what string) error {
	for name := range own {
		if strings.HasPrefix(name, prefix) {
			return nil
		}
	}
	return fmt.Errorf("the runtime cannot use %s: say it with goka.WithKafkaOptions, by settings that begin with %s", what, prefix)
}
