import { z } from 'zod';
import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Store } from '../store/base/command.ts';
import { readLastRoute } from '../store/delivery/post-part.ts';
import { createMessageTool, type MessageToolDeps } from './message.ts';
import { createSessionStatusTool, createSessionsHistoryTool, createSessionsListTool } from './sessions.ts';

/** The tools that every agent has, brought like those of any plugin. */
export function corePlugin({
  store,
  ...deps
}: Omit<MessageToolDeps, 'routeTo'> & { readonly store: Store }): PluginDefinition {
  const routeTo = (laneKey: string) => store.read(readLastRoute, { laneKey });
  return {
    id: 'core',
    configSchema: z.unknown(),
    setup: ({ tools }) => {
      // A run that is only on record has nobody to send to.
      tools.register('message', (run) =>
        run.route ? createMessageTool({ ...deps, routeTo }, run) : undefined,
      );
      tools.register('session_status', (run) => createSessionStatusTool(store, run));
      tools.register('sessions_list', (run) => createSessionsListTool(store, run));
      tools.register('sessions_history', (run) => createSessionsHistoryTool(store, run));
      return () => undefined;
    },
  };
}
