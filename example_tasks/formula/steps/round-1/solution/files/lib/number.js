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

// The whole number that is nearest to a / b; of two, the one that is farther from zero.
function quotient(a, b) {
  const negative = a < 0n !== b < 0n;
  const [over, under] = [a < 0n ? -a : a, b < 0n ? -b : b];
  let whole = over / under;
  const rest = (over % under) * 2n;
  if (rest >= under) whole += 1n;
  return negative ? -whole : whole;
}

module.exports = { ONE, parse, show, quotient };
