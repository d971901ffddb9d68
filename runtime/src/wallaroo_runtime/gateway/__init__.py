"""The process that takes in messages, and keeps them in the journal until Spark is done with them."""
