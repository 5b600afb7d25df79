import type { Hooks } from '../../src/hooks/hooks.ts';

/** For plugins that register no hook. */
export const noHooks: Pick<Hooks, 'on'> = { on: () => () => undefined };
