/** A hook: no answer shows the number of a payment card. */
import { definePlugin } from 'parley/plugin';

const cardNumber = /\b(?:\d[ -]?){12,15}(\d{4})\b/g;

export const plugin = definePlugin({
  id: 'mask',
  setup(api) {
    api.hooks.on(
      'message_sending',
      ({ text }) => {
        const masked = text.replace(cardNumber, '•••• $1');
        return masked === text ? undefined : { kind: 'rewrite', text: masked };
      },
      // If it fails, nothing is sent.
      { guard: true },
    );
  },
});
