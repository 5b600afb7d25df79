import { vi } from 'vitest';
import { patienceMs } from './patience.ts';

const { waitFor, waitUntil } = vi;
const patient = { timeout: patienceMs, interval: 20 };

/** By default both give up after a second, which a loaded machine may need. */
vi.waitFor = (callback, options) => waitFor(callback, options ?? patient);
vi.waitUntil = (callback, options) => waitUntil(callback, options ?? patient);
