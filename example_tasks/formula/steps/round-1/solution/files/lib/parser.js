'use strict';
// From the text of a formula to a tree.

const { FormulaError, SYNTAX } = require('./errors.js');

const NAME = /[A-Za-z][A-Za-z0-9_]*/y;
const MARKS = /[-+*\/()]/y;

// Reads tokens one at a time.
class Lexer {
  constructor(text, line) {
    this.text = text;
    this.line = line;
    this.at = 0;
  }

  fail(column, message) {
    throw new FormulaError(SYNTAX, `${this.line ? `${this.line}:` : ''}${column}: ${message}`);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    return found && found[0];
  }

  next() {
    this.at += this.match(/[ \t]*/y).length;
    const column = this.at + 1;
    if (this.at === this.text.length) return { kind: 'end', text: '', column };
    const number = this.match(/[0-9][0-9.]*/y);
    if (number && !/^[0-9]+(\.[0-9]{1,6})?$/.test(number)) this.fail(column, `bad number '${number}'`);
    const name = this.match(NAME);
    const text = number || name || this.match(MARKS);
    if (!text) this.fail(column, `bad character '${String.fromCodePoint(this.text.codePointAt(this.at))}'`);
    this.at += text.length;
    return { kind: number ? 'number' : name ? 'name' : 'mark', text, column };
  }
}

class Parser {
  constructor(text) {
    this.lexer = new Lexer(text, 0);
    this.read = null;
  }

  // The token that comes next, read when it is needed, so that no error is found before its turn.
  get token() {
    if (!this.read) this.read = this.lexer.next();
    return this.read;
  }

  is(...marks) {
    return this.token.kind === 'mark' && marks.includes(this.token.text);
  }

  take() {
    const token = this.token;
    this.read = null;
    return token;
  }

  expect(kind, text) {
    if (this.token.kind !== kind || (text && this.token.text !== text)) this.unexpected();
    return this.take();
  }

  unexpected() {
    const { kind, text, column } = this.token;
    this.lexer.fail(column, kind === 'end' ? 'unexpected end' : `unexpected '${text}'`);
  }

  // A formula up to the end of the text.
  whole() {
    const tree = this.formula();
    if (this.token.kind !== 'end') this.unexpected();
    return tree;
  }

  formula() {
    return this.sum();
  }

  binary(left, right) {
    const { text, column } = this.take();
    return { kind: 'binary', mark: text, column, left, right: right() };
  }

  sum() {
    let left = this.product();
    while (this.is('+', '-')) left = this.binary(left, () => this.product());
    return left;
  }

  product() {
    let left = this.unary();
    while (this.is('*', '/')) left = this.binary(left, () => this.unary());
    return left;
  }

  unary() {
    if (!this.is('-')) return this.primary();
    this.take();
    return { kind: 'negative', operand: this.unary() };
  }

  primary() {
    if (this.token.kind === 'number') return { kind: 'number', text: this.take().text };
    if (this.token.kind === 'name') return { kind: 'name', name: this.take().text };
    if (!this.is('(')) this.unexpected();
    this.take();
    const inner = this.formula();
    this.expect('mark', ')');
    return inner;
  }
}

module.exports = { Parser };
