import unittest

from stations.readings import parse


class ReadingsTest(unittest.TestCase):
    def test_parts_have_names(self):
        reading = parse("oslo 2024-03-01T06:00 -3.5 4")
        found = reading.station, reading.time, reading.temperature, reading.wind
        self.assertEqual(found, ("oslo", "2024-03-01T06:00", -3.5, 4))

    def test_parts_have_no_positions(self):
        with self.assertRaises(TypeError):
            parse("oslo 2024-03-01T06:00 -3.5 4")[2]

    def test_wind_may_be_missing(self):
        self.assertIsNone(parse("oslo 2024-03-01T06:00 -3.5 -").wind)

    def test_line_that_is_none(self):
        for line in ("oslo", "oslo 2024-03-01T06:00 warm 4", "oslo 2024-03-01T06:00 1.0 4 5"):
            with self.assertRaises(ValueError, msg=line):
                parse(line)
