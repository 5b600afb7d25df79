/** A tool. */
import { definePlugin, defineTool, z } from 'parley/plugin';

export const plugin = definePlugin({
  id: 'dice',
  setup(api) {
    api.tools.register('roll_dice', () =>
      defineTool({
        name: 'roll_dice',
        description: 'Rolls a die with the given number of sides.',
        inputSchema: z.object({ sides: z.int().min(2).max(1000) }),
        parallelSafe: true,
        replay: 'safe',
        authority: 'guest',
        execute: async ({ sides }) => ({ text: String(1 + Math.floor(Math.random() * sides)) }),
      }),
    );
  },
});
