"""The norm and variance study (Yamagiwa and Shimodaira 2024)."""
