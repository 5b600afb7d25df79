/** Does what `--expose-gc` does, which no variable can. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
globalThis.gc = runInNewContext('gc');
