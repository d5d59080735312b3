// The page's script keeps to the types that its comments say.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import path from 'node:path';
import { root } from './harness.mjs';

test('the script has the types that it says', async () => {
  const compiler = new URL('./node_modules/.bin/tsc', import.meta.url).pathname;
  const words = ['--checkJs', '--allowJs', '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'esnext',
    '--lib', 'es2022,dom,dom.iterable', '--types', ''];
  const checked = await promisify(execFile)(compiler, [...words, path.join(root, 'src/web/assets/cronward.js')])
    .catch((error) => ({ stdout: `${error.stdout}${error.stderr}` }));
  assert.equal(checked.stdout, '');
});
