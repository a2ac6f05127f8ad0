package tools

import (
	"regexp"
	"slices"

	"github.com/onceward/onceward/intent"
	"github.com/onceward/onceward/providers"
)

// aboutPattern is what a mail can be about, where that is part of its identity: an id,
// never prose.
var aboutPattern = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,64}$`)

// emailSend identifies a mail by what it is for and about, never by its words.
func (s *Set) emailSend() *tool {
	workflow := s.opts.Mode == intent.Workflow
	properties := []string{
		`"to": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string", "minLength": 3, "maxLength": 254},
			"description": "Recipients: bare addresses like name@example.com, without display names. At most 100 with cc and bcc."}`,
		`"cc": {"type": "array", "maxItems": 100, "items": {"type": "string", "minLength": 3, "maxLength": 254},
			"description": "Recipients of a copy, bare addresses."}`,
		`"bcc": {"type": "array", "maxItems": 100, "items": {"type": "string", "minLength": 3, "maxLength": 254},
			"description": "Recipients of a hidden copy, bare addresses."}`,
		`"subject": {"type": "string", "minLength": 1, "maxLength": 998, "description": "The subject, in one line."}`,
		`"body": {"type": "string", "minLength": 1, "maxLength": 262144, "description": "The message as plain text, at most 256 KiB."}`,
		`"html": {"type": "string", "maxLength": 262144, "description": "The same message as HTML, at most 256 KiB. Plain text is sent too."}`,
		`"reply_to": {"type": "string", "maxLength": 254, "description": "Where answers go: one bare address."}`,
	}
	required := []string{"to", "subject", "body"}
	switch {
	case len(s.opts.Templates) > 0:
		properties = append(properties, `"template": {"type": "string", "enum": `+enum(s.opts.Templates)+`, "description": "What the mail is for."}`)
		if workflow { // left out in a repeat, it would be another mail
			required = append(required, "template")
		}
	case !workflow: // free words are no identity
		properties = append(properties, `"template": {"type": "string", "maxLength": 512, "description": "What the mail is for: the name of a template. Keep it when you repeat a call."}`)
	}
	if workflow {
		properties = append(properties, `"about": {"type": "string", "pattern": "`+aboutPattern.String()+`",
			"description": "The id of the case, order or request that the mail is about. It is part of the mail's identity: keep it when you repeat a call."}`)
		required = append(required, "about")
	}
	return s.guarded(effect{
		critical:    emailCritical,
		identifying: []string{"template", "about"},
		decode:      s.decodeEmail,
	}, tool{
		name:  providers.EmailSend,
		title: "send an email",
		description: "Sends one email. It is sent at most once for one business action: a repeated call, also with a changed subject or text, sends nothing again and gets the first call's result. " +
			"Recipients can't be changed by a repeat. " + advice,
		input: object(required, properties...),
		hints: map[string]string{"to": addressHint, "cc": addressHint, "bcc": addressHint, "reply_to": addressHint},
	})
}

func (s *Set) decodeEmail(a *arguments) (providers.Arguments, values) {
	total := 0
	m := providers.Email{
		To:      a.addresses("to", true, &total),
		Cc:      a.addresses("cc", false, &total),
		Bcc:     a.addresses("bcc", false, &total),
		Subject: a.line("subject", maxSubject, true),
		Body:    a.text("body", maxBody, true),
		HTML:    a.text("html", maxBody, false),
		ReplyTo: a.address("reply_to"),
	}
	workflow := s.opts.Mode == intent.Workflow
	switch {
	case len(s.opts.Templates) > 0:
		m.Template = a.choice("template", s.opts.Templates, workflow)
	case !workflow:
		m.Template = a.line("template", maxText, false)
	}
	if workflow {
		if m.About = a.line("about", maxText, true); m.About != "" && !aboutPattern.MatchString(m.About) {
			a.wrong("about", "must match %s", aboutPattern)
		}
	}
	return m, values{
		"to": slices.Clone(m.To), "cc": slices.Clone(m.Cc), "bcc": slices.Clone(m.Bcc), "subject": m.Subject, "body": m.Body,
		"html": m.HTML, "reply_to": m.ReplyTo, "template": m.Template, "about": m.About,
	}
}
