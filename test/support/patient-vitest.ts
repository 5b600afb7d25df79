import { vi } from 'vitest';
import { patienceMs } from './patience.ts';

const { waitFor } = vi;

/** Without a limit of its own `vi.waitFor` would give up after a second, which a loaded machine may take. */
vi.waitFor = (callback, options) => waitFor(callback, options ?? { timeout: patienceMs, interval: 20 });
