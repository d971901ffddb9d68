package wallarooapi

// KafkaEncoder makes the records that a Kafka sink writes, in the form of Wallaroo 0.5.
type KafkaEncoder interface {
	// Encode returns the value, the key (nil for no key) and the partition number of a record. With partition -1, Kafka
	// chooses the partition by the key. If the value is nil, nothing is written.
	Encode(d interface{}) (value []byte, key []byte, partition int32)
}

// KafkaPairEncoder is a KafkaEncoder that lets Kafka choose the partition, in the form of Wallaroo 0.4.
type KafkaPairEncoder interface {
	// Encode returns a record's value and its key (nil for no key). If the value is nil, nothing is written.
	Encode(d interface{}) (value []byte, key []byte)
}
