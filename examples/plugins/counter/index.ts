/** A chat command that keeps a value. */
import { definePlugin } from 'parley/plugin';

export const plugin = definePlugin({
  id: 'counter',
  setup(api) {
    api.commands.register({
      name: 'count',
      description: 'Count one further',
      run: async () => {
        const stored = await api.store.get('count');
        const count = Number(stored?.value ?? 0) + 1;
        // The version makes two people who count at once count twice.
        return {
          say: `That makes ${count}.`,
          ops: [{ kind: 'put', key: 'count', value: count, version: stored?.version ?? 0 }],
        };
      },
    });
  },
});
