"""The process that accepts messages, and keeps them in the journal until Spark has processed them."""
