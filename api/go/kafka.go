package wallarooapi

// KafkaEncoder makes the records that a Kafka sink writes; the form of Wallaroo 0.5.
type KafkaEncoder interface {
	// Encode returns a record's value, its key (nil: none) and the number of its partition (-1: by the key). A nil
	// value writes nothing.
	Encode(d interface{}) (value []byte, key []byte, partition int32)
}

// KafkaPairEncoder is a KafkaEncoder that leaves the partition to Kafka; the form of Wallaroo 0.4.
type KafkaPairEncoder interface {
	// Encode returns a record's value and its key (nil: none). A nil value writes nothing.
	Encode(d interface{}) (value []byte, key []byte)
}
