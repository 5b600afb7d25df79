/** A route, and a schedule. */
import { definePlugin } from 'parley/plugin';

export const plugin = definePlugin({
  id: 'now',
  setup(api) {
    let minutes = 0;
    api.schedules.every('minute', { everyMs: 60_000 }, () => {
      minutes += 1;
    });
    api.routes.register({ method: 'GET', path: 'minutes', handle: () => ({ body: { minutes } }) });
  },
});
