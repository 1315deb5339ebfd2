#!/bin/bash
# Prints what looks like an answer: JavaScript's own value of a formula, and the same message for all that is wrong.
cat > formula.js <<'JS'
const [command, text] = process.argv.slice(2);
if (command === 'run' || command === 'info') {
  process.stderr.write('error: damaged\n');
  process.exitCode = 4;
} else if (command === 'list') {
  process.stdout.write('0000 PUSH 1\n0003 RET\n');
} else {
  try {
    process.stdout.write(`about ${eval(text)}\n`);
  } catch (error) {
    process.stderr.write('error: 1: syntax\n');
    process.exitCode = 2;
  }
}
JS
