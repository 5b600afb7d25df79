import { vi } from 'vitest';
import { patienceMs } from './patience.ts';

const { waitFor } = vi;

/** By default `vi.waitFor` gives up after a second, which a loaded machine may need. */
vi.waitFor = (callback, options) => waitFor(callback, options ?? { timeout: patienceMs, interval: 20 });
