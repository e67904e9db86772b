import sys

print(sys.stdin.readline())
