// Package wallarooapi lets Go programs declare stream applications that run on Apache Spark.
package wallarooapi
