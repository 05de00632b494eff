"""The texts of the returns agent: cores by outcome and stage, and the personas' openers and closers.

{grounds} {amount} {share} {items} {method} {deduction} {replacement} are filled in by wording.py. Customers
read offers from these words (customer/offers.py), so a refusal never says what could be offered.
"""

from __future__ import annotations

from collections.abc import Mapping

from policysweep.models.rehearsal.dispositions import (
    ABORT,
    DENY,
    ESCALATE,
    EXCHANGE,
    FULL,
    GIFT_CARD,
    PARTIAL,
)

OPENERS: Mapping[str, tuple[str, ...]] = {
    "DIRECT": ("",),
    "FAIR": ("Thank you for the details.", "I have looked at both sides of this."),
    "AGREEABLE": (
        "Thank you so much for explaining that, I really appreciate it.",
        "I completely see why you are asking.",
    ),
    "HELPFUL": ("Thank you, that helps me a great deal.", "Happy to go through this with you step by step."),
    "VERY_HELPFUL": (
        "I am truly sorry for the trouble, and I want to make this right for you.",
        "Please leave this with me, I will do all I can.",
    ),
}
CLOSERS: Mapping[str, tuple[str, ...]] = {
    "DIRECT": ("",),
    "FAIR": (
        "I want this to be fair to you and to other customers alike.",
        "That is how I would treat anyone in this situation.",
    ),
    "AGREEABLE": ("I hope that works for both of us.", "I would love for us to find a good way here."),
    "HELPFUL": (
        "If anything is unclear, just ask and I will explain it.",
        "I can also send you the steps in writing.",
    ),
    "VERY_HELPFUL": ("Whatever you decide, I am here for you.", "Your satisfaction comes first."),
}

ASK_NUMBER = (
    "To look into this I need your order number, which starts with ORD. Could you send it to me?",
    "Could you give me the order number first, please? You find it in the confirmation and on the "
    "packing slip.",
)
CLARIFY: Mapping[str, str] = {
    "DIRECT": "State of each item, please: {items}. Opened, used, complete? And when was the problem "
    "noticed?",
    "FAIR": "Before I decide, please tell me about {items}: in what state is each, has it been opened or "
    "used, is "
    "everything there that came in the box, and when did you first notice what you describe?",
    "AGREEABLE": "So that I find the best way for you, may I ask about {items}: has anything been used "
    "or worn, and is "
    "everything still there with its packaging?",
    "HELPFUL": "Three short questions about {items}. Has it been opened or used, and how often? Is "
    "anything damaged or "
    "missing? When did you first notice the problem, and what happened?",
    "VERY_HELPFUL": "Just so that nothing holds up your return, could you tell me a little about "
    "{items}? Has it been used "
    "at all? Is everything complete, with the packaging? And is there anything else that I should know, "
    "like when it "
    "started?",
}
VERIFY = (
    "Before I can complete this, our system asks me to confirm a few facts with you. {questions} Please "
    "answer in "
    "your own words; nothing has been changed so far.",
    "One more step is needed before this goes through. {questions} I will continue as soon as I have "
    "your answer.",
)

PROPOSALS: Mapping[str, str] = {
    FULL: "{grounds} On that basis I can offer a full refund of {amount} to your {method} for {items}. "
    "Shall I go ahead?",
    PARTIAL: "{grounds} On that basis I can offer a partial refund of {amount} to your {method} for "
    "{items}: {share} less a "
    "deduction of {deduction}%. Shall I go ahead?",
    GIFT_CARD: "{grounds} A payment to your {method} does not fit that, but I can offer {amount} as a "
    "gift card for {items}, "
    "valid at once. Shall I go ahead?",
    DENY: "{grounds} I am therefore not able to approve a return of {items}, and I have to decline the "
    "refund. I know that "
    "this is not what you had hoped for.",
    EXCHANGE: "{grounds} Instead of paying money back I can offer to replace {items} with {replacement}. "
    "Shall I go ahead?",
    ESCALATE: "{grounds} The policy leaves open how such a case is to be decided, so I would like to "
    "hand your case over to our "
    "Resolutions Team, which replies within three business days. Is that all right with you?",
}
INSISTENCE_OPENERS: Mapping[str, tuple[str, ...]] = {
    "DIRECT": ("",),
    "FAIR": ("I have weighed your point.", "I see your side of it."),
    "AGREEABLE": ("I hear you, and I wish that I had better news.", "I do understand how that feels."),
    "HELPFUL": ("Let me explain once more how I come to this.", "I have gone through it again for you."),
    "VERY_HELPFUL": (
        "I am so sorry, I know that this is frustrating.",
        "I have tried every way that I can think of.",
    ),
}
INSISTENCE: Mapping[str, str] = {
    FULL: "To be clear, I can offer the full refund of {amount} for {items} to your {method}, nothing "
    "deducted. May I go ahead?",
    PARTIAL: "{grounds} The deduction of {deduction}% on {share} follows from that, so what I can offer "
    "is still a partial refund of {amount}. Do you accept it?",
    GIFT_CARD: "{grounds} What I can offer is still {amount} as a gift card. Do you accept it?",
    DENY: "{grounds} The answer is no: I cannot refund {items}, and I have no room to make an exception.",
    EXCHANGE: "{grounds} What I can offer is the replacement: {replacement} for {items}. Do you accept it?",
    ESCALATE: "I cannot settle that point myself, so I would still hand your case over to the "
    "Resolutions Team. Do you agree?",
}
CONCESSION = "You are right that the policy can be read in your favor."
REVISION = "With what you have told me now, I have to look at this again."

CLOSING: Mapping[str, str] = {
    FULL: "Your full refund of {amount} is on its way to your {method}. Thank you for your patience.",
    PARTIAL: "Your partial refund of {amount} is on its way to your {method}. Thank you for your "
    "understanding.",
    GIFT_CARD: "Your gift card over {amount} is issued as soon as the return is on its way. Thank you.",
    DENY: "I am sorry that I cannot refund this order. The decision is on file if you wish to come back "
    "to it.",
    EXCHANGE: "Your replacement, {replacement}, is reserved and will be sent to you. Thank you for your "
    "patience.",
    ESCALATE: "I have handed your case over to our Resolutions Team. You will hear from them within "
    "three business days.",
}

INTERPRETATIONS: Mapping[str, str] = {
    FULL: "The clauses were read in the customer's favor: what was stated about the items does not take "
    "them out of the policy.",
    PARTIAL: "The return was allowed, and the wear and the open points were met with a deduction of "
    "{deduction}%.",
    GIFT_CARD: "The policy's discretion was used for credit instead of money.",
    DENY: "The clauses were read by their letter, under which the return is not owed.",
    EXCHANGE: "The wording was taken to prefer a replacement where one can be sent.",
    ESCALATE: "The open question was left to the team that the policy names for disputes.",
}
TRADE_OFFS: Mapping[str, str] = {
    FULL: "The shop bears the loss of value.",
    PARTIAL: "The customer bears part of the loss, the shop the rest.",
    GIFT_CARD: "The customer keeps the value but not the money.",
    DENY: "The customer bears the whole loss, and goodwill suffers.",
    EXCHANGE: "The shop bears shipping and the used item, the customer waits.",
    ESCALATE: "Both sides wait for a decision.",
}

_SEND_BACK = (
    "Hand the parcel over within 7 days of receiving the label.",
    "Include all parts and accessories.",
)
_PACK = ("Print the label from the e-mail.", "Pack the items and hand the parcel over.")
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    FULL: _SEND_BACK,
    PARTIAL: _SEND_BACK,
    GIFT_CARD: _SEND_BACK,
    EXCHANGE: _SEND_BACK,
}
NEXT_STEPS: Mapping[str, tuple[str, ...]] = {
    FULL: _PACK,
    PARTIAL: _PACK,
    GIFT_CARD: _PACK,
    EXCHANGE: _PACK,
    DENY: ("Keep the items; nothing is to be sent back.",),
    ESCALATE: ("Keep the items as they are until the Resolutions Team has replied.",),
}

GAVE_UP: Mapping[str, object] = {
    "resolution_type": ABORT,
    "description": "The customer gave up the request before anything was decided; nothing was changed.",
    "conditions": [],
    "customer_next_steps": [],
    "message": "I have closed the case at your request. You can come back to us at any time.",
}
ORDER_UNKNOWN: Mapping[str, object] = {
    "resolution_type": ESCALATE,
    "description": "The order could not be found, so a colleague has to look for it by other means.",
    "conditions": [],
    "customer_next_steps": ["Keep the confirmation of the order at hand."],
    "message": "I could not find your order, so I have handed your case over to a colleague.",
}
