"""What the tests share: small models, runs, stores and servers, and the place of the data."""
