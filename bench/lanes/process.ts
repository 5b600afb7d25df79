/** The entry of a process under measurement. */
import { now } from '../clock.ts';

const begunAt = now();
void import('./measured-process.ts').then(({ run }) => run(begunAt));
