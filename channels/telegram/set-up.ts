import type { ChannelSetUp } from '#contracts/channel.ts';

export const setUp: ChannelSetUp = {
  label: 'Telegram',
  hint: 'a bot token; two minutes',
  how: 'In Telegram, write /newbot to @BotFather. It gives you a token.',
  fields: [{ variable: 'TELEGRAM_BOT_TOKEN', question: 'Bot token', isSecret: true }],
  ownerId: { example: '123456789', form: /^\d{4,20}$/ },
};
