// Tells what came of each test in the words of `cargo test`: scripts/run-tests.sh makes its table of them.

export default async function* reporter(source) {
  const [begun, failures] = [Date.now(), []];
  let passed = 0;
  yield '     Running tests/browser/main.rs (node)\n\n';
  for await (const { type, data } of source) {
    if (type === 'test:stdout' || type === 'test:stderr') yield data.message;
    if (type === 'test:diagnostic' && data.nesting > 0) yield `# ${data.message}\n`;
    const counts = data?.details && data.details.type !== 'suite' && !/\.test\.mjs$/.test(data.name);
    if (type === 'test:pass' && counts) {
      passed += 1;
      yield `test ${word(data.name)} ... ok\n`;
    }
    // A suite that fails by itself has no test that did: its set-up broke.
    if (type === 'test:fail' && (counts || data.details?.error?.failureType === 'hookFailed')) {
      failures.push([word(data.name), data.details.error]);
      yield `test ${word(data.name)} ... FAILED\n`;
    }
  }
  if (failures.length) yield '\nfailures:\n\n';
  for (const [name, error] of failures) yield `---- ${name} ----\n${error.cause?.stack ?? error.cause ?? error}\n\n`;
  const seconds = ((Date.now() - begun) / 1000).toFixed(2);
  const verdict = failures.length ? 'FAILED' : 'ok';
  yield `\ntest result: ${verdict}. ${passed} passed; ${failures.length} failed; 0 ignored; 0 measured; 0 filtered out; finished in ${seconds}s\n`;
}

const word = (name) => name.trim().replaceAll(/[^A-Za-z0-9]+/g, '_');
