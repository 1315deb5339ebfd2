'use strict';
// What ends the program, with the status that it ends with.

class FormulaError extends Error {
  constructor(exitCode, message) {
    super(message);
    this.exitCode = exitCode;
  }
}

const SYNTAX = 2;
const RUN = 3;
const FILE = 4;

module.exports = { FormulaError, SYNTAX, RUN, FILE };
