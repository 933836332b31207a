"""The models of the files of `config/`, and what reads them."""
