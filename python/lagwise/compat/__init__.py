"""Classes under the names that users of other packages type."""
