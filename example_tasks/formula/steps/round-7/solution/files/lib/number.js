'use strict';
// Decimals with six places, kept as a BigInt of millionths.

const PLACES = 6;
const ONE = 10n ** BigInt(PLACES);

function parse(text) {
  const [whole, places = ''] = text.split('.');
  return BigInt(whole + places.padEnd(PLACES, '0'));
}

function show(value) {
  const digits = String(value < 0n ? -value : value).padStart(PLACES + 1, '0');
  const places = digits.slice(-PLACES).replace(/0+$/, '');
  return (value < 0n ? '-' : '') + digits.slice(0, -PLACES) + (places && '.' + places);
}

// The whole number that is nearest to a / b; of two, the even one, or the one that is farther from zero.
function quotient(a, b, evenHalves) {
  const negative = a < 0n !== b < 0n;
  const [over, under] = [a < 0n ? -a : a, b < 0n ? -b : b];
  let whole = over / under;
  const rest = (over % under) * 2n;
  if (rest > under || (rest === under && (!evenHalves || whole % 2n === 1n))) whole += 1n;
  return negative ? -whole : whole;
}

// The text of a value in a format such as #,##0.00 or 0.0%.
function inFormat(value, format, rules) {
  const percent = format.endsWith('%');
  const places = (format.split('.')[1] || '').replace('%', '').length;
  const unit = 10n ** BigInt(PLACES - places);
  const scaled = quotient(percent ? value * 100n : value, unit, rules.evenHalves);
  const digits = String(scaled < 0n ? -scaled : scaled).padStart(places + 1, '0');
  let whole = places ? digits.slice(0, -places) : digits;
  if (format.startsWith('#')) whole = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  const point = places ? '.' + digits.slice(-places) : '';
  const minus = (rules.signedZero ? value : scaled) < 0n ? '-' : '';
  return minus + whole + point + (percent ? '%' : '');
}

module.exports = { ONE, parse, show, quotient, inFormat };
