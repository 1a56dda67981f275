#!/bin/bash
# The machine that //tests/chaos runs in has no rails of its own: the lab makes them.
