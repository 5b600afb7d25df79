import { expect, it } from 'vitest';
import { faultOf } from '../../../src/store/sqlite/writer-messages.ts';

it.each([
  ['SQLITE_CORRUPT', /^\/data\/parley\.db is damaged .*, or its disk is failing \(no luck\)\. .*backup.*\.$/],
  [
    'SQLITE_IOERR_WRITE',
    /^The disk that holds \/data\/parley\.db is failing \(SQLITE_IOERR_WRITE: no luck\)\.$/,
  ],
  ['SQLITE_BUSY', /^\/data\/parley\.db can't be used now \(SQLITE_BUSY: no luck\)\.$/],
])('explains %s in a sentence, as damage or as a failing disk', (code, sentence) => {
  const error = Object.assign(new Error('no luck'), { code });
  expect(faultOf(error, '/data/parley.db')).toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(sentence),
  });
});
