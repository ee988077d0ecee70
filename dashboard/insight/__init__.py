"""The judgement: pure functions from what the ledger read to what people are told."""
