import sys

print("\n".join(sorted(sys.argv[1:])))
