import unittest

from stations.alerts import find_alerts
from stations.readings import parse


class AlertsTest(unittest.TestCase):
    def test_frost(self):
        readings = [parse("oslo 2024-03-01T06:00 -0.1 4"), parse("oslo 2024-03-01T07:00 0.0 4")]
        self.assertEqual(find_alerts(readings), ["oslo 2024-03-01T06:00 frost"])

    def test_storm(self):
        readings = [parse("oslo 2024-03-01T06:00 1.0 19"), parse("oslo 2024-03-01T07:00 1.0 20")]
        self.assertEqual(find_alerts(readings), ["oslo 2024-03-01T07:00 storm"])

    def test_no_storm_without_wind(self):
        self.assertEqual(find_alerts([parse("oslo 2024-03-01T06:00 1.0 -")]), [])
