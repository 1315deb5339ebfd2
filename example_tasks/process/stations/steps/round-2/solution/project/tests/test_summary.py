import unittest

from stations.readings import parse
from stations.summary import mean, summarize


class SummaryTest(unittest.TestCase):
    def test_lowest_mean_and_highest(self):
        readings = [parse("oslo 2024-03-01T06:00 -3.5 4"), parse("oslo 2024-03-01T12:00 1.3 4")]
        self.assertEqual(summarize(readings), ["oslo -3.5 -1.1 1.3"])

    def test_mean_is_exact(self):
        for temperatures, shown in (((1, 2), 2), ((-1, -2), -2), ((1, -1), 0), ((0, -1, 0), 0), ((3, 4, 4), 4)):
            self.assertEqual(mean(temperatures), shown)

    def test_stations_by_name(self):
        readings = [parse("oslo 2024-03-01T06:00 1.0 4"), parse("bergen 2024-03-01T06:00 2.0 4")]
        self.assertEqual(summarize(readings), ["bergen 2.0 2.0 2.0", "oslo 1.0 1.0 1.0"])
