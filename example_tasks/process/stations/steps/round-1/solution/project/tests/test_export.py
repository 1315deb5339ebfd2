import unittest

from stations.export import csv_lines
from stations.readings import parse


class ExportTest(unittest.TestCase):
    def test_header_and_rows(self):
        lines = csv_lines([parse("oslo 2024-03-01T06:00 -3.5 4")])
        self.assertEqual(lines, ["station,time,temperature,wind", "oslo,2024-03-01T06:00,-3.5,4"])

    def test_missing_wind_is_empty(self):
        self.assertEqual(csv_lines([parse("oslo 2024-03-01T06:00 -3.5 -")])[1], "oslo,2024-03-01T06:00,-3.5,")
