// replaced by the first operator
