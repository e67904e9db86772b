/** The skill that opens the settings tools to the run that views it. */
export const SETTINGS_SKILL = `---
name: ambit-settings
description: Read and change this agent's own settings. View this when somebody asks you to change how you work, or what you may do.
---

# Changing your own settings

After you have viewed this skill, two more tools are there from your next step on:

- \`settings_read\` answers your settings: instructions, model, permission mode, what you may use, limits.
- \`settings_write\` changes some of them. Each call waits for a person's approval of exactly this change.

## How to

1. Call \`settings_read\` and look at what is there.
2. Say in words what you are going to change and why.
3. Call \`settings_write\` once with only the settings that change:
   - \`instructions\`: the whole new text; what is not in it is gone
   - \`model\`: the name of another model
   - \`whileBusy\`: \`queue\`, \`refuse\` or \`steer\` messages that come while you work
   - \`mode\`: a narrower permission mode (\`default\` is the narrowest)
   - \`disableTools\`: names of tools that you will do without
   - \`limits\`: lower \`runsAtOnce\`, \`callsPerRun\` or \`callsPerMinute\`
4. A change holds from the next run on. Another change is another call, and another approval.

Nothing here can allow you more than you have: a wider mode, other servers, skills or rules are an administrator's to give.
`;

/** The skill that opens the drafting tools to the run that views it. */
export const DRAFTING_SKILL = `---
name: ambit-skill-drafting
description: Propose a skill of your own from what you learned. View this when somebody asks you to remember how something is done.
---

# Proposing a skill

After you have viewed this skill, two more tools are there from your next step on:

- \`skill_draft\` writes a draft of this session: a name, a description, a body, and files if it needs some. Writing it again replaces it. A draft is kept for seven days and belongs to this session alone.
- \`skill_manage\` asks a person to make the draft a skill of this session's agent. They read the draft and decide on exactly that text.

## How to

1. Write what is the same each time, and leave out what was only so today. Say when the skill is to be used in its description.
2. Keep the body short; put long material under \`references/\`, forms under \`templates/\`, programs under \`scripts/\`, anything else under \`assets/\`.
3. Call \`skill_draft\`, then \`skill_manage\` with the name and the digest that it answered.
4. The skill is there from the next run on. Its scripts may be run once an administrator has enabled them.
`;
