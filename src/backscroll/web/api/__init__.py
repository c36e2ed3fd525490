"""The JSON API below ``/api/v1``, with the documents of the command line.

operations  paths, parameters and handlers
parameters  values of a request, checked
schemas     JSON schemas of the documents
openapi     the OpenAPI description, generated from the other modules
"""
