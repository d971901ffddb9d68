/** gRPC to workers, gateway and egress. */
package org.wallaroo.spark.rpc;
