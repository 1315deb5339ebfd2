#!/bin/bash
# A program that prints whatever it reads: there is never anything left that should have gone.
echo 'import sys; sys.stdout.write(sys.stdin.read())' > prune.py
